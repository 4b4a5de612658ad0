"""Files in the layouts of SentEval, LEAF, CelebA and the health tables, small and made up; anything else is refused."""

import pytest
from published_files import celeba_attributes, senteval


def write(path, text, encoding="utf-8"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding=encoding)


def test_sentevals_texts_have_a_file_for_each_class_or_the_class_in_front(tmp_path):
    write(tmp_path / "MR/rt-polarity.pos", "a fine caf\xe9 film\nworth it\n", "latin-1")
    write(tmp_path / "MR/rt-polarity.neg", "dull\n", "latin-1")
    texts, classes, is_test = senteval(tmp_path, "MR")
    assert (texts, classes.tolist(), is_test) == (["dull", "a fine caf\xe9 film", "worth it"], [0, 1, 1], None)
    for part, line in (("train", "4 a joy"), ("dev", "0 no"), ("test", "2 it is a film")):
        write(tmp_path / f"SST/fine/sentiment-{part}", line + "\n")
    texts, classes, is_test = senteval(tmp_path, "SST-5")
    assert (texts, classes.tolist(), is_test.tolist()) == (
        ["a joy", "no", "it is a film"],
        [4, 0, 2],
        [False, False, True],
    )
    write(tmp_path / "TREC/train_5500.label", "DESC:manner How did it end ?\nNUM:date When ?\n", "latin-1")
    write(tmp_path / "TREC/TREC_10.label", "LOC:city Where ?\n", "latin-1")
    texts, classes, is_test = senteval(tmp_path, "TREC-6")
    assert (texts[0], classes.tolist(), is_test.tolist()) == ("How did it end ?", [1, 5, 4], [False, False, True])
    write(tmp_path / "TREC/TREC_10.label", "Where ?\n", "latin-1")
    with pytest.raises(ValueError, match=r"TREC_10.label must have a class .* line 1 has not"):
        senteval(tmp_path, "TREC-6")


def test_celebas_attributes_are_forty_of_each_image(tmp_path):
    path, names = tmp_path / "list_attr_celeba.txt", [f"Attribute_{i}" for i in range(40)]
    lines = ["000001.jpg " + " ".join(["-1", " 1"] * 20), "000002.jpg " + " ".join(["1"] * 40)]
    write(path, "\n".join(["2", " ".join(names) + " ", *lines]) + "\n")
    images, attributes, table = celeba_attributes(path)
    assert (images, attributes) == (["000001.jpg", "000002.jpg"], names)
    assert table.tolist() == [[0, 1] * 20, [1] * 40]
    for count, line in (("3", lines[0]), ("2", lines[0].replace("-1", "0")), ("2", lines[0] + " 1")):
        write(path, "\n".join([count, " ".join(names), line, lines[1]]))
        with pytest.raises(ValueError, match=r"list_attr_celeba.txt must have the number of images"):
            celeba_attributes(path)
    for text in ("", "0", "\n".join(["2", " ".join(names)])):
        write(path, text)
        with pytest.raises(ValueError, match=r"list_attr_celeba.txt must have the number of images"):
            celeba_attributes(path)
