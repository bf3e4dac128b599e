"""SELinux, AppArmor and user namespaces: what the system forbids on top of file modes."""

from selfhost.doctor.area import Seen, area


@area("isolation", order=40)
def isolation(seen: Seen) -> None:
    around = seen.host.surroundings
    if around is None:
        seen.unknowns.append("SELinux, AppArmor and user namespaces were not looked at")
        return
    parts = [f"SELinux {around.selinux}" if around.selinux else "no SELinux"]
    parts += ["AppArmor"] if around.apparmor else []
    mapped = around.user_namespace not in ("", "initial")
    parts += ["in a user namespace"] if mapped else []
    seen.calm = ", ".join(parts)
