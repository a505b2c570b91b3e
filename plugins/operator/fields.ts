/** Who is written into the audit log for what is done with the admin token. */
export const ADMIN = 'admin';

/** The body of what needs none. */
export const NOTHING = { type: 'object', additionalProperties: false, properties: {} } as const;
