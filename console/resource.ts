import { useCallback, useLayoutEffect, useState } from 'preact/hooks';
import { exchange, Failure } from './api';

/** What a part of the page needs from the gateway, and how far that is. */
export interface Resource<T> {
  /** What came last; while something else is fetched it is of the path before. */
  readonly data: T | undefined;
  /** Why the last round failed; what came before stays. */
  readonly failure: Failure | undefined;
  readonly isLoading: boolean;
  /** Grows by one whenever what came was newer than what the same path had answered. */
  readonly version: number;
  readonly reload: () => void;
}

interface State<T> {
  readonly data: T | undefined;
  readonly failure: Failure | undefined;
  /** The path that the last answer, or failure, was of. */
  readonly answered: string | undefined;
  readonly version: number;
}

interface Options {
  /** Asks again so long after each answer while the page is looked at; with its tag, so that what is not new costs nothing. */
  readonly everyMs?: number | undefined;
  /** Another number asks again at once. */
  readonly round?: number;
}

const NOTHING = { data: undefined, failure: undefined, answered: undefined, version: 0 };

/** Fetches a path of the interface, again when it changes; undefined fetches nothing. */
export function useResource<T>(path: string | undefined, { everyMs, round = 0 }: Options = {}): Resource<T> {
  const [state, setState] = useState<State<T>>(NOTHING);
  const [attempt, setAttempt] = useState(0);
  const reload = useCallback(() => setAttempt((before) => before + 1), []);

  // Before the page is painted: the gateway works in the meantime.
  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt or round fetches the same path again
  useLayoutEffect(() => {
    if (path === undefined) return;
    const aborter = new AbortController();
    const { signal } = aborter;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let etag: string | undefined;
    const fetchOnce = async () => {
      try {
        const answer = await exchange<T>(path, { signal, ifNoneMatch: etag });
        if (signal.aborted) return;
        etag = answer.etag;
        const { data } = answer;
        setState((before) => ({
          data: data ?? before.data,
          failure: undefined,
          answered: path,
          version: data === undefined || before.answered !== path ? before.version : before.version + 1,
        }));
      } catch (error) {
        if (!signal.aborted) setState((before) => ({ ...before, failure: toFailure(error), answered: path }));
      }
    };
    const again = async () => {
      if (document.visibilityState === 'visible') await fetchOnce();
      if (!signal.aborted) timer = setTimeout(again, everyMs);
    };
    void fetchOnce().then(() => {
      if (everyMs !== undefined && !signal.aborted) timer = setTimeout(again, everyMs);
    });
    return () => {
      aborter.abort();
      clearTimeout(timer);
    };
  }, [path, everyMs, attempt, round]);

  const { data, failure, answered, version } = state;
  // The same path once more is a fresher answer to the same question: nothing steps back for it.
  return { data, failure, version, isLoading: path !== answered, reload };
}

export function toFailure(error: unknown): Failure {
  return error instanceof Failure
    ? error
    : new Failure(0, 'BROKEN', error instanceof Error ? error.message : String(error));
}
