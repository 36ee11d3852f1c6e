import type { AgentId } from '../../events/index.ts';
import type { AgentInput } from './agent-input.ts';
import type { BuiltinTool } from '../../tools/builtin/index.ts';
import type { Tool } from '../../tools/tool.ts';
import type { AppField } from './app.ts';
import type { TroupeInput } from './agents-file.ts';

/** A definition whose agents and tools the compiler knows. */
export interface KnownInput<
  Agent extends AgentInput,
  Given extends Tool,
  Template extends AgentInput,
> extends Omit<TroupeInput, 'agents' | 'templates' | 'tools'> {
  /** The agents, at least one. */
  agents: readonly Agent[];
  /** Templates of agents that the command `spawn` creates: `coder` becomes `coder-1`, `coder-2` and so on. Default: none. */
  templates?: readonly Template[] | undefined;
  /** Tools of the program's own, made with `defineTool`. Agents may call those that their `tools` name. Default: none. */
  tools?: readonly Given[] | undefined;
}

/**
 * What is asked of an agent besides its type: no names of tools and no fields that do not exist. Only what is written out is
 * checked here: what a program builds has names of the type `string`, and is checked when the troupe is opened.
 */
export type Checked<Agent, Name extends string> = Agent extends { id: infer Id; provider: infer P }
  ? AgentId extends Id
    ? unknown
    : NoOther<Agent, Extract<AgentInput, { provider: P }>> & CheckedTools<Agent, Name>
  : unknown;

type CheckedTools<Agent, Name> = Agent extends { tools: readonly (infer Granted)[] }
  ? string extends Granted
    ? unknown
    : { readonly tools: readonly (Name | BuiltinTool | `${string}/${string}`)[] }
  : unknown;

type NoOther<T, Shape> = {
  readonly [K in keyof T as K extends keyof Shape ? never : IsLeftOut<T[K]> extends true ? never : K]: {
    readonly error: `${K & string} is not a field`;
  };
};
type IsLeftOut<T> = [T] extends [undefined] ? true : false;

/** Returns its argument: gives an `agents.ts` types and completion. */
export function defineTroupe<
  const Agent extends AgentInput,
  const Given extends Tool = never,
  const Template extends AgentInput = never,
>(
  definition: KnownInput<Agent & Checked<Agent, NoInfer<Given>['name']>, Given, Template> & AppField<Given>,
): KnownInput<Agent, Given, Template> & AppField<Given> {
  return definition as unknown as KnownInput<Agent, Given, Template> & AppField<Given>;
}
