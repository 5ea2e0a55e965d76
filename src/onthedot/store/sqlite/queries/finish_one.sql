-- name: finish_one
/* finish_done: it is one run each time */
