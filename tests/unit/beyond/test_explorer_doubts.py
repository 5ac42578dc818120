"""What the explorer says of solutions that are right by luck."""

from explorer_cases import Writer

from runexplorer.explorer import Explorer


def test_a_solution_that_is_right_by_luck_is_found_out_also_where_training_did_not_ask(tmp_path):
    writer = Writer(tmp_path)
    writer.sample([(1, "wheels", "", "n0 = 10\nn1 = 15\nanswer = n0 + n1\n", -1.0)])
    writer.save("final")
    lucky = Explorer(writer.run).problem("train/1")["solutions"][1]
    assert lucky["doubt"].startswith("with ")
    assert "the reference" in lucky["doubt"]
