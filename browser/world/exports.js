// What the library calls by name.
return {
  collect, find, differ, mark, rest, prepare, arm, disarm, verdict, aim, plan, put, canPick,
  viewNow, whereNow, pick, filled, checkedNow, scrollTarget, scrollDirect, scrolled, boxOf,
  conclude, scaleNow, fetchBegin, fetchRead, fetchEnd, until, hiding, adopt, nodeOf,
};
