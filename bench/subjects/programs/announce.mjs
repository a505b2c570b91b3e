/** Listens on a free loopback port and sends it to the parent; exits when the parent is gone. */
export function listen(server) {
  server.keepAliveTimeout = 300_000;
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => process.send({ port: server.address().port }));
  endWithParent();
}

export function endWithParent() {
  process.on('disconnect', () => process.exit(0));
  process.on('SIGTERM', () => process.exit(0));
}
