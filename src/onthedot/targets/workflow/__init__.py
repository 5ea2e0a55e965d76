"""The kind `workflow`: executions of workflow engines, followed to their end."""
