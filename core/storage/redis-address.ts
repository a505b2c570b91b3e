import { StartFailure } from '../base/start-failure';

/** The address of Redis that REDIS_URL names. */
export type RedisAddress =
  | { readonly kind: 'single'; readonly url: string }
  | ({ readonly kind: 'cluster'; readonly nodes: readonly RedisNode[] } & Access)
  | ({ readonly kind: 'sentinel'; readonly nodes: readonly RedisNode[]; readonly master: string } & Access);

interface RedisNode {
  readonly host: string;
  readonly port: number;
}

interface Access {
  readonly tls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** The password for connections to the sentinels, not to Redis. */
  readonly sentinelPassword?: string | undefined;
}

const FORMS =
  'Write it as redis://[user:password@]host:6379 (rediss:// for TLS), redis+cluster://[user:password@]host1:6379,host2:6379, ' +
  'or redis+sentinel://[user:password@]host1:26379,host2:26379/master-name.';

const SEVERAL = /^(rediss?)\+(cluster|sentinel):\/\/(?:([^@/]*)@)?([^/?@]*)(?:\/([^?]*))?(?:\?(.*))?$/;

/**
 * Reads REDIS_URL. Unlike a URL, it may name several hosts, with commas between them.
 * @throws StartFailure that says what was expected; never a password
 */
export function parseRedisUrl(text: string): RedisAddress {
  if (/^rediss?:\/\//.test(text)) {
    if (!URL.canParse(text)) throw new StartFailure(`REDIS_URL is not a URL. ${FORMS}`);
    return { kind: 'single', url: text };
  }
  const match = SEVERAL.exec(text);
  if (match === null) throw new StartFailure(`REDIS_URL begins with ${schemeOf(text)}. ${FORMS}`);
  const [, scheme, kind, userinfo, hosts = '', path = '', query = ''] = match;
  const nodes = hosts.split(',').map((host) => readNode(host, kind === 'cluster' ? 6379 : 26_379));
  const access = { tls: scheme === 'rediss', ...readUser(userinfo) };
  if (kind === 'cluster') {
    if (path !== '' || query !== '')
      throw new StartFailure(
        `REDIS_URL: the address of a Cluster must end after its hosts, because a Cluster has one database. ${FORMS}`,
      );
    return { kind, nodes, ...access };
  }
  if (path === '' || path.includes('/'))
    throw new StartFailure(`REDIS_URL: the name of the master must follow the sentinels. ${FORMS}`);
  return { kind: 'sentinel', nodes, master: decodeURIComponent(path), ...access, ...readSentinel(query) };
}

function schemeOf(text: string): string {
  return /^[a-z+]*:\/\//i.exec(text)?.[0] ?? 'no scheme';
}

function readNode(text: string, defaultPort: number): RedisNode {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+)(?::(\d{1,5}))?$/.exec(text);
  const port = match?.[2] === undefined ? defaultPort : Number(match[2]);
  if (match?.[1] === undefined || port < 1 || port > 65_535)
    throw new StartFailure(`REDIS_URL: "${text}" is not a host with a port. ${FORMS}`);
  return { host: match[1].replace(/^\[|\]$/g, ''), port };
}

function readUser(userinfo = ''): Pick<Access, 'username' | 'password'> {
  const [username = '', ...password] = userinfo.split(':');
  return {
    username: username === '' ? undefined : decodeURIComponent(username),
    password: password.length === 0 ? undefined : decodeURIComponent(password.join(':')),
  };
}

function readSentinel(query: string): Pick<Access, 'sentinelPassword'> {
  const given = new URLSearchParams(query);
  for (const name of given.keys()) {
    if (name !== 'sentinelPassword')
      throw new StartFailure(`REDIS_URL: unknown parameter "${name}"; only sentinelPassword is known. ${FORMS}`);
  }
  return { sentinelPassword: given.get('sentinelPassword') ?? undefined };
}
