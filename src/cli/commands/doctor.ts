import type { Check } from './checks.ts';
import { paint, print, printable, printJson, table } from '../render/output.ts';

interface DoctorOptions {
  data?: string;
  url?: string;
  machines?: boolean;
  /** True without names. */
  verify?: true | string[];
  json?: boolean;
}

export async function doctor(file: string | undefined, options: DoctorOptions): Promise<void> {
  if (options.machines) return await showMachines(options);
  const { verify: verified, url, data, json } = options;
  if (verified) {
    const { verify } = await import('./verify.ts');
    return await verify({ conversations: verified === true ? [] : verified, url, data, json });
  }
  const { runChecks } = await import('./checks.ts');
  const checks = await runChecks({ file, data: data ?? '.troupe', env: process.env });
  const isWell = checks.every(({ status }) => status !== 'failed');
  if (json) printJson({ ok: isWell, checks });
  else for (const check of checks) print(renderCheck(check));
  if (!isWell) process.exitCode = 1;
}

const MARKS = {
  ok: paint('green', 'ok     '),
  warning: paint('yellow', 'warning'),
  failed: paint('red', 'failed '),
} as const;

function renderCheck({ name, status, detail }: Check): string {
  return `${MARKS[status]}  ${name.padEnd(10)}  ${printable(detail)}`;
}

async function showMachines({ json }: DoctorOptions): Promise<void> {
  const { agentLifecycle } = await import('../../machines/agent-lifecycle.ts');
  const { availability } = await import('../../machines/availability.ts');
  const { workflow } = await import('../../machines/workflow.ts');
  const { describeMachine } = await import('../../machines/describe.ts');
  const machines = [
    describeMachine(agentLifecycle),
    describeMachine(availability),
    describeMachine(workflow),
  ];
  if (json) return printJson({ machines });
  for (const { id, states } of machines) {
    const rows = states.flatMap(({ path, initial, effect, events }) => {
      const name = `${initial ? '→' : ' '} ${path}`;
      if (events.length === 0) return [[name, effect ?? '', '', '']];
      return events.map(({ event, guard, target }, index) => [
        index === 0 ? name : '',
        index === 0 ? (effect ?? '') : '',
        `${event}${guard === null ? '' : ` [${guard}]`}`,
        target,
      ]);
    });
    print(paint('bold', id));
    print(table([['  state', 'effect', 'event', 'target'].map((head) => paint('dim', head)), ...rows]));
    print();
  }
}
