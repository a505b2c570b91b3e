/** The names of members whose texts identify an account or one answer. */
const PRIVATE =
  /(^|_)(id|key|user|account|organization|org|project|workspace|fingerprint|signature|encrypted_content)$|Id$/;

/** Matches a JSON member with a text: its name and its value. */
const MEMBER = /"([^"\\]*)"(\s*:\s*)"((?:[^"\\]|\\.)*)"/g;

/** Shorter values are not replaced elsewhere, because they could occur by chance. */
const TELLING_CHARACTERS = 12;

/**
 * Replaces each id, and each value that names an account, with an invented one, in JSON and in events of JSON. Equal values get
 * equal replacements, so calls and their results still belong together. Every other byte stays.
 */
export function sanitise(texts: readonly string[]): string[] {
  const invented = new Map<string, string>();
  const replaced = texts.map((text) =>
    text.replaceAll(MEMBER, (member, name: string, colon: string, value: string) => {
      if (value === '' || !PRIVATE.test(name)) return member;
      const known = invented.get(value) ?? `recorded-${invented.size + 1}`;
      invented.set(value, known);
      return `"${name}"${colon}"${known}"`;
    }),
  );
  const replacements = [...invented].filter(([value]) => value.length >= TELLING_CHARACTERS);
  return replaced.map((text) => replacements.reduce((whole, [value, known]) => whole.replaceAll(value, known), text));
}
