import type { Upstream } from '../catalog/catalog';
import { takesVersion, versionOf } from '../catalog/versions';
import { fail, type GatewayError } from '../errors';
import type { ModelRequest } from './call';

/** Returns the error for a call whose version none of these upstreams accepts; undefined if one accepts it, or if there is no upstream. */
export function refusedVersion(
  upstreams: readonly Pick<Upstream, 'versions'>[],
  request: Pick<ModelRequest, 'protocol' | 'headers'>,
): GatewayError | undefined {
  const version = versionOf(request);
  if (upstreams.length === 0 || upstreams.some((each) => takesVersion(each, version))) return undefined;
  const taken = [...new Set(upstreams.flatMap(({ versions }) => [...(versions ?? [])]))].sort();
  const param = 'anthropic-version';
  return fail('INVALID_FIELD', {
    param,
    message: `${param}: expected ${taken.join(' or ')}, which the upstreams of this model take`,
  });
}
