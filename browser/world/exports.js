// What the library calls by name.
return {
  collect, find, differ, mark, prepare, arm, disarm, verdict, aim, put, canPick,
  viewNow, whereNow, pick, filled, checkedNow, scrollTarget, scrollDirect, scrolled, boxOf,
  finish, rest, scrollMoved, scaleNow, windowNow, onDisplay, fetchBegin, fetchRead, fetchBlob, fetchEnd, until, hiding, adopt, nodeOf, inText,
  dragArm, dragBegun,
};
