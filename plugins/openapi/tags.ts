const TAG_DESCRIPTIONS: Readonly<Record<string, string>> = {
  models: 'Model calls, and the models that they can name.',
  service: 'The health and the description of the process.',
};

/** Returns the noun of a path: `accounts` for `/admin/v1/accounts/{id}`, `usage` for `/v1/usage.csv`. */
export function tagOf(path: string): string {
  const [noun] = /(?<=\/v1\/)[a-z-]+/.exec(path) ?? ['service'];
  return noun;
}

/** Lists the tags of these paths' operations, as linters require. */
export function tagsOf(paths: Readonly<Record<string, object>>): readonly object[] {
  const operations = Object.values(paths).flatMap((path) => Object.values(path) as { readonly tags: string[] }[]);
  return [...new Set(operations.flatMap(({ tags }) => tags))].map((name) => ({
    name,
    description: TAG_DESCRIPTIONS[name] ?? `Routes below \`/v1/${name}\`.`,
  }));
}
