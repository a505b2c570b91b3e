/** Describes a header of an answer. */
export function header(description: string, type: string): object {
  return { description, schema: { type } };
}
