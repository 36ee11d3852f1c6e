import { Go } from '../shared/go.tsx';
import { agentsByNeed } from '../state/selection.ts';
import { PRESETS } from '../state/filter.ts';
import { go, LISTS, route } from '../state/route.ts';
import { middle } from '../state/middle.ts';
import { later } from '../shared/later.tsx';
import { Reading } from './reading/reading.tsx';
import '../style/list.css';

const AgentGraph = later(async () => (await import('./agent-graph.tsx')).AgentGraph);
const EventList = later(async () => (await import('./event-list.tsx')).EventList);
const TaskTree = later(async () => (await import('./task-tree.tsx')).TaskTree);
const TurnList = later(async () => (await import('./turn-list.tsx')).TurnList);

const VIEWS = { talk: Reading, turns: TurnList, events: EventList, tree: TaskTree, graph: AgentGraph };
const LIST_NAMES = { talk: 'Talk', turns: 'Turns', events: 'Events', tree: 'Tree', graph: 'Graph' };

/**
 * The middle column: the conversation, its turns, its events, the tree of its tasks, or the graph of its agents. With a
 * filter it shows turns or events.
 */
export function Happened() {
  const { kind, q, problems, by } = route.value;
  const Shown = VIEWS[middle.value];
  const isOwnKind = !PRESETS.some(({ id }) => id === kind);
  return (
    <section class="list" aria-label="What happened">
      <header class="bar list-bar">
        <span class="list-switch" role="group" aria-label="List">
          {LISTS.map((list) => (
            <Go key={list} to={{ list }} isCurrent={middle.value === list}>
              {LIST_NAMES[list]}
            </Go>
          ))}
        </span>
        <select
          aria-label="Kinds of events"
          value={kind}
          onChange={(event) => go({ kind: event.currentTarget.value })}
        >
          {PRESETS.map(({ id, label }) => (
            <option key={id} value={id}>
              {label}
            </option>
          ))}
          {isOwnKind && <option value={kind}>{kind}</option>}
        </select>
        <AgentFilter by={by} />
        <label class="list-check">
          <input
            type="checkbox"
            checked={problems}
            onChange={(event) => go({ problems: event.currentTarget.checked })}
          />
          Problems
        </label>
        <input
          id="search"
          class="list-search"
          type="search"
          placeholder="Filter  /"
          aria-label="Filter by text"
          value={q}
          onInput={(event) => go({ q: event.currentTarget.value }, { replace: true })}
        />
      </header>
      <Shown />
    </section>
  );
}

function AgentFilter({ by }: { by: string }) {
  const agents = agentsByNeed.value;
  const isSeveral = by.includes(',');
  return (
    <select aria-label="Agent" value={by} onChange={(event) => go({ by: event.currentTarget.value })}>
      <option value="">All agents</option>
      {isSeveral && <option value={by}>{by.split(',').length} agents</option>}
      {agents
        .map(({ id, name }) => ({ id, name }))
        .toSorted((a, b) => a.name.localeCompare(b.name))
        .map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
    </select>
  );
}
