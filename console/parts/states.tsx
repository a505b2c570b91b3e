import type { ComponentChildren } from 'preact';
import type { Failure } from '../api';
import { Icon, type IconName } from './icon';

/** What stands where there is nothing yet: it says the next step. */
export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} />
      </span>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** What failed, and what can be done. */
export function Failed({
  failure,
  onRetry,
}: {
  readonly failure: Failure;
  readonly onRetry?: (() => void) | undefined;
}) {
  const { requestId, retryAfterSeconds } = failure.more;
  return (
    <div class="failed" role="alert">
      <Icon name="warning" />
      <div>
        <p>{failure.message}</p>
        <p class="faint small">
          {failure.code}
          {requestId !== undefined && (
            <>
              {' · '}
              <code>{requestId}</code>
            </>
          )}
          {retryAfterSeconds !== undefined && ` · try again in ${retryAfterSeconds} s`}
        </p>
      </div>
      {onRetry !== undefined && (
        <button type="button" class="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Stands where text will be, and is as high as it. */
export function Bone({ width = '6ch' }: { readonly width?: string }) {
  return <span class="bone" style={{ width }} />;
}
