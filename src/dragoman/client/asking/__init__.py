"""Results of a type, from an agent: `Session.ask`, and the tool that submits them."""
