/** Mutants that behave like the original script, and why. */
export const EQUIVALENT: readonly {
  readonly script: string;
  readonly change: string;
  readonly line?: number;
  readonly why: string;
}[] = [
  {
    script: 'settle',
    change: 'boundary: > in elseif cost > hold then',
    why: 'A cost that is the hold takes 0 more, whatever is available: both ways charge the hold.',
  },
  {
    script: 'restore',
    change: 'word: untouched becomes restored',
    why: 'Nothing decides by this answer: it is for whoever watches Redis.',
  },
  {
    script: 'restore',
    change: 'word: restored becomes untouched',
    why: 'Nothing decides by this answer: it is for whoever watches Redis.',
  },
  {
    script: 'restore',
    change: "statement removed: redis.call('DEL', name)",
    line: 64,
    why:
      'What is there of this id was closed by the same entry, or was a hold and is deleted above: fields that are left are ' +
      'those that are written, or are not read in the state that is written.',
  },
  {
    script: 'scopes',
    change: 'boundary: < in local month = march < 10',
    why: 'The 13th month of a year is the first of the next, and only a first or second month moves on the year.',
  },
  {
    script: 'scopes',
    change: 'direction: < in local month = march < 10',
    why: 'Month 14 of a year is month 2 of the next, and month -9 of the next is month 3 of the year: twelve more or fewer, and a year.',
  },
  {
    script: 'lapse',
    change: "one more: '1' in local head",
    why: 'Of the entries that are read only the first is looked at.',
  },
  {
    script: 'trim',
    change: "one more: '1' in local head",
    why: 'Of the entries that are read only the first is looked at.',
  },
  {
    script: 'trim',
    change: 'word: other_head becomes trimmed',
    why: 'Nothing decides by this answer: it is for whoever watches Redis.',
  },
  {
    script: 'trim',
    change: 'word: trimmed becomes other_head',
    why: 'Nothing decides by this answer: it is for whoever watches Redis.',
  },
];
