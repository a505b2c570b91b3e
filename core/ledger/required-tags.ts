/**
 * Returns the SQL of a value: the names of the tags that the calls of a key must have, those that its team requires included, as JSON; null
 * for none. `key` is the name of a row of api_keys.
 */
export function requiredTagsSql(key: string): string {
  return `(SELECT jsonb_agg(DISTINCT name ORDER BY name) FROM (
    SELECT jsonb_array_elements_text(${key}.required_tags) AS name
    UNION ALL SELECT jsonb_array_elements_text(required_tags) FROM teams WHERE teams.id = ${key}.team_id) AS required)`;
}

/** Returns the required tags for a key's settings. It leaves them out if there are none. */
export function requiredTagsOf({ requiredTags }: { readonly requiredTags: readonly string[] | null }) {
  return requiredTags === null ? {} : { requiredTags };
}
