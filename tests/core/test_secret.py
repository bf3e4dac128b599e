from selfhost.core.secret import ensure_key, read_key


def test_a_key_is_made_once_for_its_owner_only_with_a_header_line_beside_it(tmp_path):
    path = tmp_path / "qwen3-4b" / "key"
    key = ensure_key(path)
    assert ensure_key(path) == key == read_key(path)
    header = path.with_name("key.header")
    assert header.read_text() == f"Authorization: Bearer {key}\n"
    assert [file.stat().st_mode & 0o777 for file in (path, header)] == [0o600, 0o600]
    assert len(key) >= 43  # 32 random bytes in base64


def test_two_keys_differ(tmp_path):
    assert ensure_key(tmp_path / "a") != ensure_key(tmp_path / "b")


def test_an_empty_key_file_is_not_a_key(tmp_path):
    path = tmp_path / "key"
    path.write_text("\n")
    assert ensure_key(path).startswith("sk-")


def test_a_stale_header_follows_its_key(tmp_path):
    path = tmp_path / "key"
    path.write_text("sk-mine\n")
    path.with_name("key.header").write_text("Authorization: Bearer old\n")
    ensure_key(path)
    assert path.with_name("key.header").read_text() == "Authorization: Bearer sk-mine\n"
