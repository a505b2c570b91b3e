/** Returns what mocha's `spec` reporter lists as failed at the end of its output: full titles of tests, then failed fixtures. */
export function failuresIn(output: string): readonly string[] {
  const lists = output.split(/^ {2}\d+ failing$/m).slice(1);
  const tests = lists.flatMap((list) =>
    [...list.matchAll(TEST)].map(([, title]) => (title ?? '').replace(/\n\s+/g, ' ')),
  );
  const fixtures = [...output.matchAll(FIXTURE)].map(([, fixture, error]) => `${fixture}: ${error}`);
  return [...tests, ...fixtures];
}

/** A numbered line, then a deeper indented line for each inner suite and for the test. The last of them ends in a colon. */
const TEST = /^ {2}\d+\) (.+(?:\n {7,}.+?)*?):\n/gm;

/** Such as a global teardown, which belongs to no test. */
const FIXTURE = /^\[mocha\] (global \w+) failed:\n(.+)$/gm;
