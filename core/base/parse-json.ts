/** Parses JSON; returns undefined for anything else. Reads NaN and Infinity as null, because Python writes them for counts that it could not compute. */
export function parseJson(text: string): unknown {
  const read = parseStrictly(text);
  if (read !== undefined) return read;
  const mended = text.replace(NO_NUMBER, 'null');
  return mended === text ? undefined : parseStrictly(mended);
}

const NO_NUMBER = /(?<=[:[,]\s{0,8})-?(?:NaN|Infinity)(?=\s{0,8}[,\]}])/g;

function parseStrictly(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
