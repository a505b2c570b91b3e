/** Whether the key may see how its calls are routed: `x-tollgate-debug`. Operators alone set it. */
export const DEBUG = { type: 'boolean' } as const;
