import type { TestGateway } from './gateway';

// biome-ignore lint/suspicious/noExplicitAny: tests look at any part of a document
export type Document = any;

export interface Operation {
  readonly path: string;
  readonly method: string;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly operation: any;
}

export async function readDocuments(gateway: TestGateway): Promise<{ public: Document; admin: Document }> {
  const [open, admin] = await Promise.all([
    gateway.call('/openapi.json', { method: 'GET' }),
    gateway.admin('GET', '/admin/v1/openapi.json'),
  ]);
  return { public: open.json, admin: admin.json };
}

export function operationsOf(document: Document): readonly Operation[] {
  return Object.entries(document.paths as Record<string, object>).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  );
}
