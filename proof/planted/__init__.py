"""Bugs planted on purpose: each must turn the simulation red, or the checker is blind to its kind.

`bugs` says what each of them is, `plant` puts one in and takes it out again, `command` tries them all (`make planted`).
Nothing here ever touches a file of the product.
"""
