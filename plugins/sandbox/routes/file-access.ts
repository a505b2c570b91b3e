import { fail } from '../../../core/errors';
import { openRunning, type RunningSandbox } from '../access';
import type { InsideService } from '../inside';
import { operate } from '../operate';
import type { OperationType } from '../states';

/** The largest file that goes as JSON; a larger one goes raw. */
export const MOST_AS_JSON = 4 * 1_048_576;

/** The largest file that is taken at once. */
export const MOST_UPLOADED = 20 * 1_048_576;

/** What the endpoints of files begin with. @throws NOT_SUPPORTED and what `openRunning` throws */
export async function withFiles<T>(
  service: InsideService,
  { accountId, sandboxId }: { readonly accountId: string; readonly sandboxId: string | undefined },
  type: OperationType,
  work: (running: RunningSandbox) => Promise<T>,
): Promise<T> {
  const running = await openRunning(service, accountId, sandboxId ?? '');
  if (!running.sandbox.offering.capabilities.files) throw fail('NOT_SUPPORTED');
  return operate(service.database, running, type, () => work(running));
}

/** The path of a query string. */
export function readPath(text: string): string {
  if (text === '') throw new RangeError('expected a path');
  return text;
}

/** @throws PATH_INVALID */
export function requiredPath(path: string | undefined): string {
  if (path === undefined) throw fail('PATH_INVALID', { param: 'path', message: 'path: expected one' });
  return path;
}
