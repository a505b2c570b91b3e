const TAG_DESCRIPTIONS: Readonly<Record<string, string>> = {
  models: 'Model calls, and the models that they can name.',
  service: 'The health and the description of the process.',
};

/** The noun: `/admin/v1/accounts/{id}` and `/v1/usage.csv` are of `accounts` and `usage`. */
export function tagOf(path: string): string {
  const [noun] = /(?<=\/v1\/)[a-z-]+/.exec(path) ?? ['service'];
  return noun;
}

/** The tags that the operations of these paths have, as linters want them listed. */
export function tagsOf(paths: Readonly<Record<string, object>>): readonly object[] {
  const operations = Object.values(paths).flatMap((path) => Object.values(path) as { readonly tags: string[] }[]);
  return [...new Set(operations.flatMap(({ tags }) => tags))].map((name) => ({
    name,
    description: TAG_DESCRIPTIONS[name] ?? `Routes below \`/v1/${name}\`.`,
  }));
}
