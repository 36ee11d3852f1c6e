import { paint, print, printable, printJson, table } from '../render/output.ts';
import { accessSync, constants, existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import { toTroupeError, TroupeError } from '../../base/errors.ts';
import {
  DISTRIBUTED,
  DISTRIBUTED_ON_POSTGRES,
  loadWith,
  POSTGRES_ALONE,
} from '../../base/optional-packages.ts';
import { checkDatabase } from '../../store/sqlite/check-files.ts';
import { dataPaths, lockDataDir } from '../../store/sqlite/data-lock.ts';
import { findAgents, type FoundAgents, recallAgents } from '../process/find-agents.ts';
import { openApp } from '../../library/config/app.ts';
import { openDoors } from '../../library/runtime/doors.ts';
import { loadAgents } from '../../providers/agents-package.ts';
import { loadPostgres } from '../../library/runtime/services.ts';
import { databaseIn } from '../process/operator-flags.ts';
import { nodeProblem } from '../../base/node-version.ts';

interface DoctorOptions {
  data?: string;
  url?: string;
  machines?: boolean;
  /** True if no names were given. */
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

interface CheckOptions {
  file: string | undefined;
  data: string;
  env: Record<string, string | undefined>;
}

/** Checks everything that agents need to work. */
export async function runChecks({ file, data, env }: CheckOptions): Promise<Check[]> {
  const [agents, services] = await Promise.all([checkAgents(file, data), checkServices(env)]);
  return [
    checkNode(),
    agents.check,
    ...(await checkWorkspaces(agents.found)),
    ...(await checkSkills(agents.found)),
    ...checkKeys(agents.found, env),
    ...(await checkPrograms(agents.found, env)),
    ...(await checkPackages(agents.found)),
    ...(await checkApp(agents.found)),
    ...(await checkServers(agents.found, env)),
    ...checkData(data),
    ...services,
    ...(await checkWork(agents.found, data, env)),
  ];
}

function checkNode(): Check {
  const problem = nodeProblem(process.versions.node);
  return { name: 'node', status: problem === null ? 'ok' : 'failed', detail: problem ?? process.version };
}

async function checkAgents(
  file: string | undefined,
  data: string,
): Promise<{ check: Check; found: FoundAgents | null }> {
  const name = 'agents';
  try {
    const found = (await findAgents(file)) ?? (await recallAgents(data));
    if (!found) {
      const detail = 'no agents file found; troupe dev runs the demo company';
      return { check: { name, status: 'warning', detail }, found };
    }
    const ids = found.definition.agents.map(({ id }) => `@${id}`).join(' ');
    return { check: { name, status: 'ok', detail: `${found.file ?? 'demo company'}: ${ids}` }, found };
  } catch (error) {
    return { check: { name, status: 'failed', detail: toTroupeError(error).message }, found: null };
  }
}

/** The directories of instruction files that the agents file names. */
async function checkWorkspaces(found: FoundAgents | null): Promise<Check[]> {
  if (!found || !isNamed(found, 'workspace')) return [];
  const { workspaceProblems } = await import('../../library/config/instruction-files.ts');
  const problems = await workspaceProblems(found.definition);
  return directoryChecks('workspace', problems, 'instruction files can be read');
}

/** The directories of skills that the agents file names. */
async function checkSkills(found: FoundAgents | null): Promise<Check[]> {
  if (!found || !isNamed(found, 'skills')) return [];
  const { skillProblems } = await import('../../library/config/skills.ts');
  return directoryChecks('skills', await skillProblems(found.definition), 'skills can be read');
}

function isNamed({ definition }: FoundAgents, field: 'workspace' | 'skills'): boolean {
  const { agents, templates = [] } = definition;
  return [definition, ...agents, ...templates].some((each) => each[field] !== undefined);
}

function directoryChecks(name: string, problems: readonly string[], ok: string): Check[] {
  if (problems.length === 0) return [{ name, status: 'ok', detail: ok }];
  return problems.map((detail) => ({ name, status: 'failed', detail }));
}

/** Opens what the tools get as `app`, as a start does, and closes it again. */
async function checkApp(found: FoundAgents | null): Promise<Check[]> {
  const { app, tools = [] } = found?.definition ?? {};
  if (!app && tools.every(({ needs = [] }) => needs.length === 0)) return [];
  const name = 'app';
  try {
    await (await openApp({ app, tools })).close();
    return [{ name, status: 'ok', detail: 'opened, and has what the tools need' }];
  } catch (error) {
    return [{ name, status: 'failed', detail: toTroupeError(error).message }];
  }
}

/** Models on a server of this machine need no key. */
function isOnThisMachine(url: string | undefined): boolean {
  return url !== undefined && /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(new URL(url).hostname);
}

/** Tells which environment variables are set, never their values. */
function checkKeys(found: FoundAgents | null, env: CheckOptions['env']): Check[] {
  const users = new Map<string, string[]>();
  for (const agent of found?.definition.agents ?? []) {
    if (!('apiKeyEnv' in agent) || agent.apiKeyEnv === undefined) continue;
    if ('baseUrl' in agent && isOnThisMachine(agent.baseUrl) && !env[agent.apiKeyEnv]) continue;
    users.set(agent.apiKeyEnv, [...(users.get(agent.apiKeyEnv) ?? []), `@${agent.id}`]);
  }
  return [...users].map(([variable, ids]) => {
    const isSet = Boolean(env[variable]?.trim());
    const detail = `${variable} is ${isSet ? 'set' : 'not set'} (${ids.join(' ')})`;
    // A local server may need no key, so a missing key is not a failure in itself.
    return { name: 'key', status: isSet ? 'ok' : 'warning', detail };
  });
}

/** The packages of agent programs such as Claude Code. If `@troupe/agents` is missing, `checkPackages` reports that. */
async function checkPrograms(found: FoundAgents | null, env: CheckOptions['env']): Promise<Check[]> {
  const used = new Set((found?.definition.agents ?? []).map(({ provider }) => provider));
  const programs = (['claude-code', 'codex'] as const).filter((provider) => used.has(provider));
  const [first] = programs;
  const agents = first && (await loadAgents(first).catch(() => null));
  if (!agents) return [];
  return programs.map((provider): Check => {
    try {
      const { name, version } = agents.findProgram(provider, env);
      return { name: 'program', status: 'ok', detail: `${name} ${version}` };
    } catch (error) {
      return { name: 'program', status: 'failed', detail: toTroupeError(error).message };
    }
  });
}

/** Packages of vendors and doors, which are installed separately. */
async function checkPackages(found: FoundAgents | null): Promise<Check[]> {
  const { requirePackages } = await import('../../library/runtime/registry.ts');
  try {
    await requirePackages(found?.definition.agents ?? []);
    await openDoors(found?.definition.doors);
    return [];
  } catch (error) {
    return [{ name: 'package', status: 'failed', detail: toTroupeError(error).message }];
  }
}

/** Time for a tool server to answer this check, ms. */
const SERVER_MS = 15_000;

/** Starts or reaches the tool servers whose tools agents have, and asks each for its list. */
async function checkServers(found: FoundAgents | null, env: Env): Promise<Check[]> {
  const { agents = [], templates = [], mcpServers = {} } = found?.definition ?? {};
  const granted = [...agents, ...templates].flatMap(({ tools = [] }) => tools);
  const wanted = Object.entries(mcpServers).filter(([name]) =>
    granted.some((tool) => tool.startsWith(`${name}/`)),
  );
  const name = 'tools';
  const check = async ([server, settings]: (typeof wanted)[number]): Promise<Check> => {
    const { openMcpTools } = await import('../../tools/mcp/open-mcp-tools.ts');
    const { McpServers } = await import('../../tools/mcp/settings.ts');
    const timeoutMs = Math.min(SERVER_MS, settings.timeoutMs ?? SERVER_MS);
    const warnings: string[] = [];
    const onWarning = (warning: unknown) => void warnings.push(String(warning));
    const servers = McpServers.parse({ [server]: { ...settings, timeoutMs } });
    const extras = new Set(granted);
    const opened = await openMcpTools(servers, {
      env,
      clock: systemClock,
      onWarning,
      extras,
    });
    await opened.close();
    const why = opened.away.get(server);
    if (why !== undefined) {
      const detail = `mcpServers.${server} cannot be used: ${why}. Agents work without its tools until it is there`;
      return { name, status: 'warning', detail };
    }
    if (warnings.length > 0)
      return { name, status: 'warning', detail: `mcpServers.${server}: ${warnings.join('; ')}` };
    return { name, status: 'ok', detail: `mcpServers.${server}: ${opened.tools.length} tools` };
  };
  const failed = (error: unknown): Check => ({
    name,
    status: 'failed',
    detail: toTroupeError(error).message,
  });
  return await Promise.all(wanted.map((each) => check(each).catch(failed)));
}

function checkData(data: string): Check[] {
  const dir = resolve(data);
  if (!existsSync(dir)) return [checkParent(dir)];
  let exposed: string | null;
  try {
    const lock = lockDataDir(dir);
    ({ exposed } = lock);
    lock.release();
  } catch (error) {
    const isBusy = error instanceof TroupeError && error.code === 'data_busy';
    return [{ name: 'data', status: isBusy ? 'ok' : 'failed', detail: toTroupeError(error).message }];
  }
  const free: Check = { name: 'data', status: 'ok', detail: `${dir} is writable and free` };
  return [exposed === null ? free : { ...free, status: 'warning', detail: exposed }, checkIntegrity(dir)];
}

/** Checks the nearest existing directory, because missing ones are created. */
function checkParent(dir: string): Check {
  const parent = dirname(dir);
  if (!existsSync(parent)) return checkParent(parent);
  try {
    accessSync(parent, constants.W_OK);
    return { name: 'data', status: 'ok', detail: `${dir} will be created` };
  } catch {
    // The remedy is the same for every cause.
    return {
      name: 'data',
      status: 'failed',
      detail: `${parent} is not writable: choose another with --data`,
    };
  }
}

function checkIntegrity(dir: string): Check {
  const name = 'database';
  const { database } = dataPaths(dir);
  if (!existsSync(database)) return { name, status: 'ok', detail: 'none yet' };
  try {
    const problems = checkDatabase(database);
    if (problems.length === 0) return { name, status: 'ok', detail: 'no damage found' };
    return { name, status: 'failed', detail: `${problems.join('; ')}; restore it from a backup` };
  } catch (error) {
    return { name, status: 'failed', detail: toTroupeError(error).message };
  }
}

/** Finds work for agents that the file does not define. Data that cannot be opened are reported by other checks. */
async function checkWork(found: FoundAgents | null, data: string, env: Env): Promise<Check[]> {
  const hasServer = databaseIn(env) !== undefined;
  if (!found || (!hasServer && !existsSync(dataPaths(resolve(data)).database))) return [];
  const { openWork } = await import('./verify.ts');
  const work = await openWork(found.definition, { data, env }).catch(() => []);
  return [...Map.groupBy(work, ({ agent }) => agent)].map(([agent, of]) => {
    const where =
      of.length === 1 ? of[0]?.conversation : `${of.length} conversations, ${of[0]?.conversation} for one`;
    const detail = `@${agent} is not defined, but has work in ${where}: define it again if it was removed by mistake, or, if it was renamed, give the agent that it is now aliases: ["${agent}"]; a started troupe ends its tasks. There: ${of[0]?.work}`;
    return { name: 'work', status: 'warning', detail };
  });
}

type Env = Record<string, string | undefined>;

/** Checks the configured servers of the distributed mode. */
async function checkServices(env: Env): Promise<Check[]> {
  const [mongodb, postgres, redis] = ['MONGODB_URL', 'POSTGRES_URL', 'REDIS_URL'].map((name) =>
    env[name]?.trim(),
  );
  const checks = await Promise.all([
    mongodb ? checkMongodb(mongodb) : null,
    postgres ? checkPostgresql(postgres, redis ? DISTRIBUTED_ON_POSTGRES : POSTGRES_ALONE) : null,
    redis ? checkRedisServer(redis, postgres ? DISTRIBUTED_ON_POSTGRES : DISTRIBUTED) : null,
  ]);
  const found = checks.filter((check) => check !== null);
  if (mongodb && postgres) {
    const detail = 'MONGODB_URL and POSTGRES_URL are both set: troupe serve and troupe worker take one';
    return [...found, { name: 'services', status: 'failed', detail }];
  }
  // PostgreSQL alone is enough.
  if (found.length !== 1 || postgres) return found;
  const [named, other] = redis ? ['REDIS_URL', 'MONGODB_URL'] : ['MONGODB_URL', 'REDIS_URL'];
  const detail = `${named} is set and ${other} is not: troupe serve and troupe worker need both, or POSTGRES_URL alone`;
  return [...found, { name: 'services', status: 'warning', detail }];
}

async function checkPostgresql(url: string, need: typeof DISTRIBUTED): Promise<Check> {
  const name = 'postgres';
  try {
    const { checkPostgres } = await loadPostgres(need);
    const { at, version, standbys, isDurable } = await checkPostgres(url);
    const found = `${at}: ${version}, standbys: ${standbys}`;
    if (isDurable) return { name, status: 'ok', detail: found };
    const detail = `${found}, fsync is off: acknowledged events are lost if the machine fails`;
    return { name, status: 'warning', detail };
  } catch (error) {
    return { name, status: 'failed', detail: toTroupeError(error).message };
  }
}

async function checkMongodb(url: string): Promise<Check> {
  const name = 'mongodb';
  try {
    const load = () => import('../../store/mongo/connect-mongo.ts');
    const { checkMongo } = await loadWith(DISTRIBUTED, load);
    const { at, version, replicaSet, expiry } = await checkMongo(url);
    if (expiry.kind === 'refused') {
      const detail = `${at}: ${version}, no TTL indexes (${expiry.why}): Troupe needs them, so that the server deletes journals that have expired; use MongoDB, or a server that has them`;
      return { name, status: 'failed', detail };
    }
    if (expiry.kind === 'ignored') {
      const detail = `${at}: ${version}, TTL indexes without effect: journals that have expired stay, and take space`;
      return { name, status: 'warning', detail };
    }
    if (replicaSet !== null)
      return { name, status: 'ok', detail: `${at}: ${version}, replica set ${replicaSet}` };
    const detail = `${at}: ${version}, no replica set: its data is lost if its disk fails`;
    return { name, status: 'warning', detail };
  } catch (error) {
    return { name, status: 'failed', detail: toTroupeError(error).message };
  }
}

async function checkRedisServer(url: string, need: typeof DISTRIBUTED): Promise<Check> {
  const name = 'redis';
  const warnings: string[] = [];
  try {
    const [{ checkRedis }, { redisAddress }] = await Promise.all([
      loadWith(need, () => import('../../queue/redis/connect-redis.ts')),
      loadWith(need, () => import('../../queue/redis/redis-url.ts')),
    ]);
    const onWarning = (warning: unknown) => warnings.push(String(warning));
    const { version, policy } = await checkRedis(url, { onWarning });
    if (warnings.length > 0) return { name, status: 'warning', detail: warnings.join('; ') };
    return { name, status: 'ok', detail: `${redisAddress(url)}: ${version}, ${policy}` };
  } catch (error) {
    return { name, status: 'failed', detail: toTroupeError(error).message };
  }
}

interface Check {
  name: string;
  status: 'ok' | 'warning' | 'failed';
  detail: string;
}
