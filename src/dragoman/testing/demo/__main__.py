"""`python -m dragoman.testing.demo`: the demo agent on standard input and output."""

from dragoman.testing.demo.agent import DemoAgent

if __name__ == "__main__":
    DemoAgent().serve_stdio()
