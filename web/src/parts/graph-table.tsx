import { useState } from 'preact/hooks';
import { whole } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { type GraphEdge, sumOf } from '../state/graph.ts';
import { latestOf } from '../state/graph-place.ts';

interface TableProps {
  edges: readonly GraphEdge[];
  nameOf: (id: string) => string;
  /** Called with the id of the edge that has the focus, or null. */
  onLook: (edge: string | null) => void;
}

/** The edges of the graph as a table, busiest first: for screen readers and the keyboard. */
export function GraphTable({ edges, nameOf, onLook }: TableProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="graph-table" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Graph as a table</summary>
      {isOpen && (
        <table>
          <thead>
            <tr>
              <th scope="col">From</th>
              <th scope="col">To</th>
              <th scope="col">Messages</th>
              <th scope="col">Tasks</th>
              <th scope="col">Hand-overs</th>
              <th scope="col">Newest</th>
            </tr>
          </thead>
          <tbody>
            {edges
              .toSorted((a, b) => sumOf(b) - sumOf(a))
              .map((edge) => (
                <tr
                  key={edge.id}
                  onPointerEnter={() => onLook(edge.id)}
                  onPointerLeave={() => onLook(null)}
                  onFocusCapture={() => onLook(edge.id)}
                  onBlurCapture={() => onLook(null)}
                >
                  <th scope="row" dir="auto">
                    {nameOf(edge.from)}
                  </th>
                  <td dir="auto">{nameOf(edge.to)}</td>
                  <td>{whole(edge.messages)}</td>
                  <td>{whole(edge.tasks)}</td>
                  <td>{whole(edge.handoffs)}</td>
                  <td>
                    <Go to={latestOf(edge)}>{edge.seq > 0 ? `event ${whole(edge.seq)}` : 'thread'}</Go>
                  </td>
                </tr>
              ))}
          </tbody>
        </table>
      )}
    </details>
  );
}
