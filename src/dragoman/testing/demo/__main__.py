"""`python -m dragoman.testing.demo`: the demo agent on standard input and output."""

from dragoman.testing.demo.demo_agent import DemoAgent

if __name__ == "__main__":
    DemoAgent().serve_stdio()
