import type { TroupeInput } from '../../src/index.ts';

/** Fifty agents in three levels: one lead, seven managers, six workers under each. */
const MANAGERS = 7;
const WORKERS = 6;
const ids = (stem: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${stem}${index + 1}`);
const managers = ids('m', MANAGERS);
const workersOf = (manager: string) => ids(`${manager}w`, WORKERS);
export const TURNS_PER_MESSAGE = 2 + 2 * MANAGERS + MANAGERS * WORKERS;

function agent(id: string, below: readonly string[]) {
  const calls = below.map((to) => ({ name: 'delegate', args: { to, task: `please do the part of ${to}` } }));
  const rest = { reply: `${id} has done its part.` };
  const rules = below.length > 0 ? [{ when: { contains: 'please' }, calls }, rest] : [rest];
  const tools = below.length > 0 ? ['delegate'] : [];
  return { id, contextWindow: 1_000_000, provider: 'scripted' as const, script: { rules }, tools };
}

export const FIFTY: TroupeInput = {
  agents: [
    agent('lead', managers),
    ...managers.flatMap((manager) => [
      agent(manager, workersOf(manager)),
      ...workersOf(manager).map((worker) => agent(worker, [])),
    ]),
  ],
  defaults: { respondWhenUnaddressed: 'lead' },
};
