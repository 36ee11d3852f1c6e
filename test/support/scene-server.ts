import {
  type FakeHandler,
  type FakeReply,
  type FakeServer,
  startFakeOpenAi,
} from '../../packages/testing/src/fake-vendors.ts';

/** A fake vendor that answers every request as the scene says, as the parts of a fixture for conformance. */
export async function sceneServer(
  scene: FakeReply | 'unreachable',
  start: (handler: FakeHandler) => Promise<FakeServer> = startFakeOpenAi,
) {
  const server = await start(() => (scene === 'unreachable' ? {} : scene));
  if (scene === 'unreachable') await server.close();
  return {
    url: server.url,
    requests: () => server.requests.length,
    arrived: () => server.arrived(),
    [Symbol.asyncDispose]: () => server.close(),
  };
}
