"""Files in the layouts of SentEval, LEAF, CelebA and the health tables, small and made up; anything else is refused."""

import json

import numpy as np
import pytest
from published_files import HEALTH, celeba, celeba_attributes, health_table, leaf, senteval


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


def test_leafs_users_keep_their_rows_together(tmp_path):
    data = {"users": ["f1", "f2"], "num_samples": [1, 2]}
    data["user_data"] = {"f1": {"x": [[0.0, 1.0]], "y": [61]}, "f2": {"x": [[0.5, 0.5], [1.0, 0.0]], "y": [3, 4]}}
    write(tmp_path / "all_data_0.json", json.dumps(data))
    rows, classes, users = leaf(tmp_path)
    assert rows.shape == (3, 2)
    assert (classes.tolist(), users.tolist()) == ([61, 3, 4], ["f1", "f2", "f2"])
    write(tmp_path / "all_data_0.json", json.dumps(data | {"num_samples": [2, 2]}))
    with pytest.raises(ValueError, match="as many x and y for each user as num_samples says"):
        leaf(tmp_path)
    write(tmp_path / "all_data_0.json", json.dumps(data | {"users": ["f1", "f3"]}))
    with pytest.raises(ValueError, match="num_samples and user_data for each of its users"):
        leaf(tmp_path)
    write(
        tmp_path / "all_data_0.json",
        json.dumps(data | {"user_data": data["user_data"] | {"f1": {"x": [[0.5]], "y": [1]}}}),
    )
    with pytest.raises(ValueError, match="must have as many numbers"):
        leaf(tmp_path)
    write(tmp_path / "all_data_0.json", "[]")
    with pytest.raises(ValueError, match=r"all_data_0\.json must be LEAF's"):
        leaf(tmp_path)
    with pytest.raises(ValueError, match="must hold LEAF's files"):
        leaf(tmp_path / "nowhere")


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


def test_celebas_vectors_meet_their_attributes_in_the_lists_own_parts(tmp_path):
    names = [f"{i:06}.jpg" for i in range(1, 5)]
    rows = [" ".join([name, *["1" if i == j else "-1" for j in range(40)]]) for i, name in enumerate(names)]
    write(tmp_path / "list_attr_celeba.txt", "\n".join(["4", " ".join(f"A{j}" for j in range(40)), *rows]))
    write(tmp_path / "list_eval_partition.txt", "\n".join(f"{n} {p}" for n, p in zip(names, "0120", strict=True)))
    order = [3, 2, 0, 1]
    np.savez(tmp_path / "features.npz", images=[names[i] for i in order], vectors=np.array([[float(i)] for i in order]))
    X, y, X_test, y_test = celeba(tmp_path)
    assert (X[:, 0].tolist(), X_test[:, 0].tolist()) == ([3.0, 0.0], [2.0])
    assert (y.argmax(axis=1).tolist(), y_test.argmax(axis=1).tolist()) == ([3, 0], [2])
    write(tmp_path / "list_eval_partition.txt", "\n".join(f"{n} 0" for n in names[1:]))
    with pytest.raises(ValueError, match=r"features\.npz must have a vector for each of `images`"):
        celeba(tmp_path)
    write(tmp_path / "list_eval_partition.txt", "000001.jpg 3")
    with pytest.raises(ValueError, match=r"list_eval_partition\.txt must have"):
        celeba(tmp_path)


TABLES = {
    "heart": "63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0\n"
    "67.0,0.0,4.0,160,286,0,2,108,1,1.5,2,?,3.0,2\n",
    "stroke": "id,gender,age,hypertension,heart_disease,ever_married,work_type,Residence_type,avg_glucose_level,bmi,"
    "smoking_status,stroke\n9046,Male,67,0,1,Yes,Private,Urban,228.69,36.6,formerly smoked,1\n"
    "51676,Female,61,0,0,Yes,Self-employed,Rural,202.21,N/A,never smoked,1\n"
    "31112,Female,80,0,1,Yes,Private,Rural,105.92,32.5,never smoked,0\n",
    "diabetes": "6,148,72,35,0,33.6,0.627,50,1\n1,85,66,29,0,26.6,0.351,31,0\n",
    "sleep": "Person ID,Gender,Age,Occupation,Sleep Duration,Quality of Sleep,Physical Activity Level,Stress Level,"
    "BMI Category,Blood Pressure,Heart Rate,Daily Steps,Sleep Disorder\n"
    "1,Male,27,Software Engineer,6.1,6,42,6,Overweight,126/83,77,4200,None\n"
    "2,Female,28,Doctor,6.2,6,60,8,Normal,125/80,75,10000,None\n",
}
EXPECTED = {
    "heart": ([[63, 1, 145, 0], [67, 0, 160, 0]], [1, 0]),
    "stroke": ([[67, 1, 0, 36.6], [80, 0, 0, 32.5]], [1, 0]),
    "diabetes": ([[50, 0, 72, 33.6], [31, 0, 66, 26.6]], [1, 0]),
    "sleep": ([[27, 1, 126, 0], [28, 0, 125, 0]], [6.1, 6.2]),
}


@pytest.mark.parametrize("name", HEALTH)
def test_health_tables_give_age_sex_blood_pressure_and_bmi(name, tmp_path):
    path = tmp_path / HEALTH[name][0]
    write(path, TABLES[name])
    people, target = health_table(tmp_path, name)
    np.testing.assert_array_equal(people, EXPECTED[name][0])
    np.testing.assert_array_equal(target, EXPECTED[name][1])
    write(
        path,
        TABLES[name].replace(
            *{"heart": ("63", "sixty"), "stroke": ("67", "x"), "diabetes": ("72", "x")}.get(name, ("126", "x"))
        ),
    )
    with pytest.raises(ValueError, match=f"{path.name} must have numbers") as caught:
        health_table(tmp_path, name)
    assert "x'" not in str(caught.value)
    head, *rows = TABLES[name].splitlines()
    for other in ("", "a,b\n1,2\n", "\n".join([head, *rows, rows[-1] + ",0"])):
        write(path, other)
        with pytest.raises(ValueError, match=f"{path.name} must have"):
            health_table(tmp_path, name)
