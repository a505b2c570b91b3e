export interface Printed {
  readonly url: string;
  readonly key: string;
}

/** Returns the address and API key that the quick start printed; undefined until it has printed all it prints. */
export function readyIn(output: string): Printed | undefined {
  const [, guide] = /^Tollgate is ready\.$([\s\S]*)^Ctrl-C ends both programs\.$/m.exec(output) ?? [];
  const [, url] = /^ {2}calls +(\S+)$/m.exec(guide ?? '') ?? [];
  const [, key] = /^ {2}API key +(\S+)$/m.exec(guide ?? '') ?? [];
  return url === undefined || key === undefined ? undefined : { url, key };
}
