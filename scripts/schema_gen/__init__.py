"""The parts of `scripts/gen_schema.py`: fetch the package, read its schemas, write Python."""
