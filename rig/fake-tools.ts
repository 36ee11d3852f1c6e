import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { Random } from '../test/support/engine-random.ts';
import type { WorkLog } from './work-log.ts';

/** One execution of a tool. It has happened, whether or not the caller learned of it. */
export interface Execution {
  at: number;
  tool: string;
  effect: string;
  process: string;
}

export interface FakeTools {
  url: string;
  executions: Execution[];
  close(): Promise<void>;
}

/** Most calls take a few ms; some take long enough for a kill to hit them. */
const QUICK_MS = 8;
const SLOW_MS = 250;
const SLOW = 0.1;
const RESET = 0.01;

/** The world behind the tools: executes first, answers later, and sometimes never. */
export async function startFakeTools(
  random: Random,
  work: WorkLog,
  faultsOn: () => boolean,
): Promise<FakeTools> {
  const executions: Execution[] = [];
  const server = createServer((request, response) => {
    const tool = request.url?.slice(1) ?? '';
    const effect = String(request.headers['x-effect']);
    const by = String(request.headers['x-process']);
    executions.push({ at: Date.now(), tool, effect, process: by });
    const done = work.begin({ process: by, ...actorOfEffect(effect) });
    response.on('close', done);
    void wait(random() < SLOW ? SLOW_MS : 2 + random() * QUICK_MS).then(() => {
      if (faultsOn() && random() < RESET) return request.socket.resetAndDestroy();
      return response.end(`${tool} is done: ${effect}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    executions,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** An effect id is `<conversation>:<agent>:<turn>/<step>.<call>`. */
export function turnOfEffect(effect: string): string {
  return effect.slice(0, effect.lastIndexOf('/'));
}

function actorOfEffect(effect: string): { conversation: string; agent: string } {
  const [conversation = '', agent = ''] = turnOfEffect(effect).split(':');
  return { conversation, agent };
}
