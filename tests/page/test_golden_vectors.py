from page.golden_vectors import GOLDEN, vectors


def test_the_vectors_the_page_is_tested_with_are_those_of_the_fold() -> None:
    assert GOLDEN.read_bytes() == vectors(), "run python tests/page/golden_vectors.py"
