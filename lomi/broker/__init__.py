"""The loop: session, admission, reserve, start, dispatch, settle; decisions; revocation; recovery; the layout."""
