"""The route table, and what follows from it: dispatch and the OpenAPI document."""
