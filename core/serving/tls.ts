import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { resolve } from 'node:path';
import { createSecureContext, createServer, type SecureContext, TLSSocket } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { Gauge } from 'prom-client';
import { metrics } from '../base/metrics';
import type { Stop } from '../base/resources';
import { errorCode } from '../base/safe-error';
import type { Configuration } from '../configuration/configuration';
import type { TlsSettings } from '../configuration/schema';
import { watchFile } from '../configuration/watch-file';
import { ConfigurationError } from '../configuration/yaml-file';

/** A certificate with its private key, both in PEM, as files hold them. */
interface KeyPair {
  readonly key: string;
  readonly cert: string;
}

interface Certificate {
  readonly pair: KeyPair;
  readonly context: SecureContext;
  readonly expires: Date;
}

type ByHost = ReadonlyMap<string, Certificate>;

const expiresAt = new Gauge({
  name: 'tollgate_certificate_expires_timestamp_seconds',
  help: 'Unix time when a certificate of a listener expires, by its path in gateway.config.yml.',
  labelNames: ['certificate'] as const,
  aggregator: 'min',
  registers: [metrics],
});

/** The certificates of one listener, as they were when its files were last valid. */
export class Certificates {
  readonly #read: () => ByHost;
  readonly #files: readonly string[];
  readonly #followers: ((pair: KeyPair) => void)[] = [];
  #current: ByHost;

  /**
   * Reads the certificate files.
   * @param place where gateway.config.yml names them
   * @throws ConfigurationError if a file is missing, or does not contain a certificate with its key
   */
  constructor(
    private readonly place: string,
    settings: TlsSettings,
    configFolder: string,
  ) {
    this.#read = () => readAll(place, settings, configFolder);
    this.#files = Object.values(settings).flatMap(({ key, cert }) =>
      [key, cert].map((file) => resolve(configFolder, file)),
    );
    this.#current = this.#take(this.#read());
  }

  /** Calls back with the default certificate, now and whenever the files change. */
  follow(take: (pair: KeyPair) => void): void {
    this.#followers.push(take);
    take(certificateOf(this.#current, 'default').pair);
  }

  contextFor(host: string): SecureContext {
    return certificateOf(this.#current, host.toLowerCase()).context;
  }

  /** Reads the certificate files again. If they are invalid, it logs why and keeps the current certificates. Open connections keep theirs in any case. */
  reload(log: Logger): void {
    const certificates = this.place;
    let read: ByHost;
    try {
      read = this.#read();
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      const { problems } = error;
      log.error({ certificates, problems }, 'changed certificates are not valid; the previous ones stay active');
      return;
    }
    if (isDeepStrictEqual(pairsOf(read), pairsOf(this.#current))) return;
    this.#current = this.#take(read);
    const { pair, expires } = certificateOf(read, 'default');
    for (const take of this.#followers) take(pair);
    log.info({ certificates, expires }, 'certificates were reloaded: new connections use the new ones');
  }

  /** Reads the certificate files again whenever one of them changes. @returns a function that stops watching the files */
  watch(log: Logger): Stop {
    const stops = [...new Set(this.#files)].map((file) => watchFile(file, () => this.reload(log)));
    return async () => {
      await Promise.all(stops.map((stop) => stop()));
    };
  }

  #take(read: ByHost): ByHost {
    for (const [host, { expires }] of read)
      expiresAt.set({ certificate: `${this.place}.${host}` }, expires.getTime() / 1_000);
    return read;
  }
}

function pairsOf(certificates: ByHost): readonly KeyPair[] {
  return [...certificates.values()].map(({ pair }) => pair);
}

/** Returns the certificate for a host: its own, the wildcard certificate that covers its first label, or the default. */
function certificateOf(certificates: ByHost, host: string): Certificate {
  const found = certificates.get(host) ?? certificates.get(host.replace(/^[^.]+/, '*')) ?? certificates.get('default');
  if (found === undefined) throw new Error('the default TLS certificate is missing');
  return found;
}

function readAll(place: string, settings: TlsSettings, configFolder: string): ByHost {
  const problems: string[] = [];
  if (settings['default'] === undefined)
    problems.push(`${place}: "default" is missing, the certificate for all other hosts`);
  const read = Object.entries(settings).flatMap(([host, { key, cert }]) => {
    try {
      return [[host, readPair(resolve(configFolder, key), resolve(configFolder, cert))] as const];
    } catch (error) {
      if (!(error instanceof WrongFile)) throw error;
      problems.push(`${place}.${host}.${error.member}: ${error.message}`);
      return [];
    }
  });
  if (problems.length === 0) return new Map(read);
  const nowhere = { file: 'gateway.config.yml', line: undefined, column: undefined };
  throw new ConfigurationError(problems.map((message) => ({ ...nowhere, message })));
}

class WrongFile extends Error {
  constructor(
    readonly member: keyof KeyPair,
    message: string,
  ) {
    super(message);
  }
}

function readPair(keyFile: string, certFile: string): Certificate {
  const pair = { key: readText('key', keyFile), cert: readText('cert', certFile) };
  const key = parse('key', keyFile, 'a private key in PEM without a passphrase', () => createPrivateKey(pair.key));
  const cert = parse('cert', certFile, 'a certificate in PEM', () => new X509Certificate(pair.cert));
  if (!cert.checkPrivateKey(key))
    throw new WrongFile('cert', `${certFile} is not the certificate of the private key in ${keyFile}`);
  const context = parse('cert', certFile, 'a certificate that TLS accepts', () => createSecureContext(pair));
  return { pair, context, expires: new Date(cert.validTo) };
}

function readText(member: keyof KeyPair, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new WrongFile(member, `${file} cannot be read (${errorCode(error, String(error))})`);
  }
}

function parse<T>(member: keyof KeyPair, file: string, expected: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new WrongFile(member, `${file} is not ${expected} (${reason})`);
  }
}

/** The certificates of each listener; undefined for a listener without TLS. */
interface ListenerCertificates {
  readonly http: Certificates | undefined;
  readonly admin: Certificates | undefined;
}

/** Reads the certificates that a configuration names. @throws ConfigurationError */
export function openCertificates({ gateway }: Configuration, configFolder: string): ListenerCertificates {
  const open = (place: string, tls: TlsSettings | undefined) => tls && new Certificates(place, tls, configFolder);
  return { http: open('https.tls', gateway.https?.tls), admin: open('admin.tls', gateway.admin.tls) };
}

/** How long a TLS handshake may take: as long as a client may take for the head of a request. */
const HANDSHAKE_WITHIN_MS = 10_000;

/**
 * Adds TLS to each connection before the server reads it. The server remains an HTTP server, so its limits, timeouts and stop work as
 * without TLS. It counts a connection after the handshake.
 */
export function serveWithTls(server: Server, certificates: Certificates): void {
  const [serve] = server.listeners('connection');
  if (serve === undefined) throw new Error('the HTTP server has no connection handler');
  const tls = createServer({
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: HANDSHAKE_WITHIN_MS,
    SNICallback: (host, answer) => answer(null, certificates.contextFor(host)),
  });
  certificates.follow((pair) => tls.setSecureContext(pair));
  // Node reports timeouts and malformed requests to the server that a socket's member `server` names. This member must therefore be the HTTP server.
  tls.on('secureConnection', (socket) => Reflect.apply(serve, server, [Object.assign(socket, { server })]));
  server.off('connection', serve as (socket: Socket) => void);
  server.on('connection', (socket: Socket) => {
    // A TLS connection arrives here again, after its handshake, if it asked for another protocol (upgrade) and no handler accepted that.
    if (socket instanceof TLSSocket) return Reflect.apply(serve, server, [socket]);
    // Node's own TLS server also disables `allowHalfOpen`. Otherwise the connection stays open after its client has disconnected.
    socket.allowHalfOpen = false;
    tls.emit('connection', socket);
  });
}
