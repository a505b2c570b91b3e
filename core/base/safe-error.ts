/** Returns the fields of an unknown error that are safe to log. The text of a database's error can quote the values of the query. */
export function safeErrorFields(error: unknown): object {
  if (!(error instanceof Error)) return { name: typeof error };
  const { severity, code, table, constraint } = error as Error & Partial<Record<string, string>>;
  const where = error.stack?.split('\n').filter((line) => /^ +at /.test(line));
  if (severity !== undefined) return { name: 'DatabaseError', code, table, constraint, where };
  return { name: error.name, message: error.message, code, where };
}

/** Returns the code that the system or a database gave an error; `otherwise` if it has none. */
export function errorCode(error: unknown, otherwise = ''): string {
  return error instanceof Error && 'code' in error ? String(error.code) : otherwise;
}
