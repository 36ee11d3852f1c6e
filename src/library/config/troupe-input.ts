import type { AgentId } from '../../events/index.ts';
import type { AgentBase, AgentByProvider, ProviderName } from './agent-input.ts';
import type { BuiltinTool } from '../../tools/builtin/index.ts';
import type { Tool } from '../../tools/tool.ts';
import type { AppField } from './app.ts';
import type { TroupeInput } from './agents-file.ts';

/*
 * A definition is inferred as a whole, as `D`, and compared with `CheckedInput<D>`: the declared type of each part, with
 * the names that exist in `D`. The target contains nothing that was inferred, so errors are the compiler's own, at their
 * places. Names that a program builds have the type `string`; they are checked when the troupe is opened.
 */

/** The type of a parameter that takes a definition. `D` is inferred from the first half, which never holds. */
export type InputFor<D, More = unknown> = [D] extends [never]
  ? D
  : CheckedInput<D> & More & NoOther<D, keyof TroupeInput, 'is not a field'>;

/** A definition, with the names that exist in it. */
interface CheckedInput<D> extends With<TroupeInput, Checks<D>> {}

/** The fields of a definition that name agents or tools. */
interface Checks<D> {
  agents: AgentList<Get<D, 'agents'>, D>;
  templates: AgentList<Get<D, 'templates'>, D> | undefined;
  defaults: Defaults<D> | undefined;
  routing: Routing<TroupeInput['routing'], Named<RoutedTo<Get<D, 'routing'>>, AnyAgent<D>>>;
  schedules: readonly Schedule<D>[] | undefined;
  workflows: readonly Workflow<D>[] | undefined;
  budgets: Budgets<AgentName<D>, Get<Get<D, 'budgets'>, 'agents'>> | undefined;
  context: Context<D> | undefined;
  fragments: readonly ForAgents<Entry<'fragments'>, FragmentAgent<D>>[] | undefined;
}

/** `T` with other types for some fields. Comments and optionality stay. */
type With<T, Fields> = { [K in keyof T]: K extends keyof Fields ? Fields[K] : T[K] };

type Settings<Field extends keyof TroupeInput> = NonNullable<TroupeInput[Field]>;
type Entry<Field extends keyof TroupeInput> = Item<Settings<Field>>;

/** `Name` if the given names are literals, else any string. */
type Named<Given, Name> = AgentId extends Given ? string : Name & string;

type Defaults<D> = With<
  Settings<'defaults'>,
  {
    respondWhenUnaddressed:
      | Named<Get<Get<D, 'defaults'>, 'respondWhenUnaddressed'>, AgentName<D>>
      | undefined;
  }
>;

type RoutedTo<R> = Get<R, 'agent'> | Item<Get<R, 'agents'>> | Item<Get<Item<Get<R, 'rules'>>, 'to'>>;
type Routing<Way, Name> = Way extends { rules: readonly (infer Rule)[] }
  ? With<Way, { rules: readonly With<Rule, { to: readonly Name[] }>[] }>
  : Way extends { agent: string }
    ? With<Way, { agent: Name }>
    : ForAgents<Way, Name>;
type ForAgents<T, Name> = T extends { agents?: infer Names }
  ? With<T, { agents: readonly Name[] | Extract<undefined, Names> }>
  : T;

type Schedule<D> = With<Entry<'schedules'>, { to: Named<Get<Item<Get<D, 'schedules'>>, 'to'>, AnyAgent<D>> }>;

type Workflow<D> = With<
  Entry<'workflows'>,
  { steps: readonly Step<Named<Get<Item<Get<Item<Get<D, 'workflows'>>, 'steps'>>, 'agent'>, AnyAgent<D>>>[] }
>;
type Step<Name> = With<Item<Entry<'workflows'>['steps']>, { agent: Name }>;

type Budgets<Name extends string, Capped> = With<
  Settings<'budgets'>,
  { agents: (Partial<Record<Name, Cap>> & NoOther<NonNullable<Capped>, Name, 'is not an agent'>) | undefined }
>;
type Cap = NonNullable<Settings<'budgets'>['agents']>[string];

type Context<D> = With<
  Settings<'context'>,
  { summariser: Named<Get<Get<D, 'context'>, 'summariser'>, AgentName<D>> | undefined }
>;

type FragmentAgent<D> = Named<Item<Get<Item<Get<D, 'fragments'>>, 'agents'>>, AgentName<D>>;

/** The agents of a list, each with the fields of its provider. */
type AgentList<List, D> = { readonly [K in keyof List]: CheckedAgent<List[K], D> };

type CheckedAgent<A, D> = A extends { readonly provider: infer P extends ProviderName }
  ? AgentByProvider[P] &
      Grants<Named<Item<Get<A, 'tools'>>, ToolName<D> & string>> &
      (P extends 'custom' ? Adapter<Named<Get<A, 'adapter'>, keyof Get<D, 'providers'>>> : unknown) &
      (A extends { needsApproval: readonly string[] } ? Approvals<A> : unknown) &
      (Get<A, 'id'> extends AgentId ? unknown : NoOther<A, keyof AgentByProvider[P], 'is not a field'>)
  : AgentBase & { provider: ProviderName };

interface Grants<Name> {
  readonly tools?: readonly Name[] | undefined;
}
interface Adapter<Name> {
  readonly adapter: Name;
}
interface Approvals<A> {
  readonly needsApproval?: readonly Named<
    Item<Get<A, 'tools'> | Get<A, 'needsApproval'>>,
    ApprovalName<Item<Get<A, 'tools'>>>
  >[];
}
/** Names for approvals of the tools that an agent has. */
type ApprovalName<Tools> =
  | Tools
  | (Tools extends `${infer Server}/${infer Name}`
      ? Name extends '*'
        ? `${Server}/${string}`
        : `${Server}/*`
      : never);

/**
 * In a literal, the compiler itself refuses unknown fields. In values from elsewhere it accepts them; then this type
 * requires a field whose name says that the unknown one does not exist.
 */
type NoOther<T, Known, Why extends string> = string extends keyof T
  ? unknown
  : {
      readonly [
        K in keyof T as K extends Known ? never : [T[K]] extends [undefined] ? never : `${K & string} ${Why}`
      ]: never;
    };

/** Ids that settings may name. */
export type AgentName<D> = IdOf<AgentsOf<D>>;
/** Ids of an agent, including former ones; `string` if one is not a literal. */
export type IdOf<A> = Literal<Text<Get<A, 'id'> | Item<Get<A, 'aliases'>>>>;
/** The same, including agents of templates. */
type AnyAgent<D> = AgentName<D> | `${Text<Get<TemplatesOf<D>, 'id'>>}-${number}`;

/** What `tools` of an agent may hold. */
type ToolName<D> = Text<Get<Item<Get<D, 'tools'>>, 'name'>> | BuiltinTool | ServerTool<Get<D, 'mcpServers'>>;
type ServerTool<Servers> = [Servers] extends [never]
  ? never
  : {
      [Server in keyof Servers & string]: `${Server}/${'*' | AllowedTool<Get<Servers[Server], 'tools'>>}`;
    }[keyof Servers & string];
type AllowedTool<Tools> = [Tools] extends [undefined] ? string : Text<Item<Tools>>;

type Get<T, Field> = T extends unknown ? (Field extends keyof T ? T[Field] : never) : never;
type Item<T> = T extends readonly (infer I)[] ? I : never;
type Text<T> = T extends string ? T : never;
/** An id of a parsed definition has a type of its own. */
type Literal<Name extends string> = AgentId extends Name ? string : Name;

/** The tools of a definition. */
export type ToolOf<D> = Extract<Item<Get<D, 'tools'>>, Tool>;
/** The agents of a definition. */
export type AgentsOf<D> = Item<Get<D, 'agents'>>;
/** The templates of a definition. */
export type TemplatesOf<D> = Item<Get<D, 'templates'>>;
/** A field of a definition. Never: it has none. */
export type FieldOf<D, Field extends keyof TroupeInput> = Get<D, Field>;

/** Returns its argument: gives an `agents.ts` types and completion. */
export function defineTroupe<const D extends object = TroupeInput>(
  definition: InputFor<D, AppField<ToolOf<D>>>,
): D {
  return definition as D;
}
