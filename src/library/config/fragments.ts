import { type AboutAgent, type AgentFragments, type Fragment, RUNTIME_ITEMS } from '../../context/index.ts';
import { TroupeError } from '../../base/errors.ts';
import { type Problem, unknownAgent, usedTwice } from './problem.ts';

/** The readable parts of an invalid fragment. */
interface Sketch {
  name?: string | undefined;
  agents?: readonly (string | undefined)[] | undefined;
}

/** Reports duplicate and reserved names, and unknown agents. */
export function* fragmentProblems(
  fragments: readonly Sketch[],
  agents: readonly (string | undefined)[],
): Generator<Problem> {
  const names = fragments.map(({ name }) => name);
  for (const [index, { name, agents: only = [] }] of fragments.entries()) {
    const path = ['fragments', index, 'name'];
    yield* usedTwice(names, index, path);
    if (name !== undefined && RUNTIME_ITEMS.includes(name.toLowerCase())) {
      yield {
        path,
        message: `"${name}" is a name of the runtime; reserved names: ${RUNTIME_ITEMS.join(', ')}`,
      };
    }
    for (const [at, agent] of only.entries()) {
      if (agent === undefined || agents.includes(agent)) continue;
      yield unknownAgent(agent, agents, ['fragments', index, 'agents', at]);
    }
  }
}

/** The fragments of one agent, static ones evaluated. Throws `config_invalid` for one that fails. */
export function fragmentsOf(fragments: readonly Fragment[], about: AboutAgent): AgentFragments {
  const given = fragments
    .filter(({ agents }) => !agents || agents.includes(about.agent))
    // By code units, so that the order does not depend on the locale.
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const textsIn = (layer: 'rules' | 'environment') =>
    given.flatMap((fragment) =>
      fragment.lifecycle === 'static' && fragment.layer === layer ? staticText(fragment, about) : [],
    );
  return {
    rules: textsIn('rules'),
    environment: textsIn('environment'),
    live: given.flatMap(({ lifecycle, name, text }) => (lifecycle === 'dynamic' ? [{ name, text }] : [])),
  };
}

function staticText({ name, text }: Extract<Fragment, { lifecycle: 'static' }>, about: AboutAgent): string[] {
  const where = `fragment ${name} of @${about.agent}`;
  let returned: unknown;
  try {
    returned = typeof text === 'string' ? text : text({ ...about });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError('config_invalid', `${where} failed: ${why}`, { fragment: name }, { cause });
  }
  if (returned === null || returned === undefined || returned === '') return [];
  if (typeof returned === 'string') return [returned.toWellFormed()];
  const message = `${where} returned no text: a static fragment must return a string or null, and not a promise`;
  throw new TroupeError('config_invalid', message, { fragment: name });
}
