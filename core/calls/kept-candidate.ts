import type { Candidate } from '../catalog/catalog';
import { keptTo } from '../catalog/credential';
import { fail } from '../errors';
import { RATE_LIMITED } from '../health/credential-gauge';
import type { UpstreamHealth } from '../health/health';
import type { KeptPlace } from './call';

/**
 * Returns the one candidate that has the object a call names, with the credential that created it. It ignores an ejection, because
 * no other candidate can answer.
 * @throws MODEL_NOT_SUPPORTED, ALL_PROVIDERS_FAILED, UPSTREAM_RATE_LIMITED
 */
export function keptCandidate<C extends Pick<Candidate, 'upstream'>>(
  candidates: readonly C[],
  kept: KeptPlace,
  health: UpstreamHealth,
): C {
  const candidate = candidates.find(({ upstream }) => upstream.name === kept.upstream);
  const credential = candidate?.upstream.credentials.find(({ name }) => name === kept.credential);
  if (candidate === undefined || credential === undefined)
    throw fail('MODEL_NOT_SUPPORTED', {
      param: 'model',
      message: `The object that "${kept.param}" names is stored at another upstream or with another credential than this model uses. Use the model that created it.`,
    });
  const { name } = candidate.upstream;
  const gauge = health.upstream(name);
  const { isDisabledByOperator } = gauge;
  if (isDisabledByOperator)
    throw fail('ALL_PROVIDERS_FAILED', {
      message: `The upstream that stores the object named by "${kept.param}" is unavailable. Retry later.`,
      details: { attempts: [{ upstream: name, outcome: 'disabled by an operator' }] },
      retryable: false,
    });
  const { refusedWith, restsUntilMs } = gauge.credential(credential.name);
  const isLimited = candidate.upstream.credentials.length > 1 && refusedWith === RATE_LIMITED;
  const restsForMs = (isLimited ? restsUntilMs : gauge.restsUntilMs) - health.now();
  if (restsForMs > 0)
    throw fail('UPSTREAM_RATE_LIMITED', {
      message: `The upstream that stores the object named by "${kept.param}" is rate limited. Retry later.`,
      retryAfterSeconds: Math.ceil(restsForMs / 1_000),
    });
  return { ...candidate, upstream: keptTo(candidate.upstream, credential) };
}
