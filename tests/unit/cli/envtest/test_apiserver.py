from pilothouse.cli.envtest.apiserver import translated


def test_without_the_stand_in_flags_stay_as_they_are():
    words = ["--etcd-servers=http://127.0.0.1:1", "--secure-port=7443"]
    assert translated(words) == words
    assert translated(["--help"]) == ["--help"]
    assert translated(["--etcd-servers", "https://127.0.0.1:1"]) == ["--etcd-servers", "https://127.0.0.1:1"]
