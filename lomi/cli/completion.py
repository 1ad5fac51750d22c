"""`lomi completion`: what a shell needs to complete `lomi`."""

import click

_WHERE = {
    "bash": '~/.bashrc:  eval "$(lomi completion bash)"',
    "zsh": '~/.zshrc:  eval "$(lomi completion zsh)"',
    "fish": "lomi completion fish > ~/.config/fish/completions/lomi.fish",
}


@click.command(epilog="  ".join(_WHERE.values()))
@click.argument("shell", type=click.Choice(tuple(_WHERE)))
def completion(shell: str) -> None:
    """Print the completion script of SHELL; add it to the shell's own start-up file."""
    from click.shell_completion import get_completion_class

    from lomi.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None, "click knows the three shells"
    script = kind(cli, {}, "lomi", "_LOMI_COMPLETE")
    click.echo(f"# {_WHERE[shell]}")
    click.echo(script.source_template % script.source_vars())
