/** Returns the operation id: `getV1UsageByRequestId` for `GET /v1/usage/{requestId}`, `getRoot` for `GET /`. */
export function operationId(method: string, path: string): string {
  if (path === '/') return `${method.toLowerCase()}Root`;
  const words = path.split('/').flatMap((segment) => {
    const [, name] = /^\{(\w+)(?:\.\.\.)?\}$/.exec(segment) ?? [];
    return name === undefined ? segment.split(/[^A-Za-z0-9]+/) : ['by', name];
  });
  return method.toLowerCase() + words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('');
}
