"""What an agent says it will do itself."""
