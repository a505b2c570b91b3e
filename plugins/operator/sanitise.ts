/** Names of members whose texts belong to an account, or to one answer. */
const PRIVATE =
  /(^|_)(id|key|user|account|organization|org|project|workspace|fingerprint|signature|encrypted_content)$|Id$/;

/** A text under a name, as JSON writes both. */
const MEMBER = /"([^"\\]*)"(\s*:\s*)"((?:[^"\\]|\\.)*)"/g;

/** Shorter ones could stand anywhere by chance. */
const TELLING_CHARACTERS = 12;

/**
 * Puts an invented value in the place of each id, and of what names an account, in JSON and in events of JSON. The same value becomes
 * the same, wherever it stands, so that calls and their results still belong together; every other byte stays.
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
  const telling = [...invented].filter(([value]) => value.length >= TELLING_CHARACTERS);
  return replaced.map((text) => telling.reduce((whole, [value, known]) => whole.replaceAll(value, known), text));
}
