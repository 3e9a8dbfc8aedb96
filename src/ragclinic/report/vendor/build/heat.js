// The part of ECharts that the heat map needs; all of it would be twice the size in every report.
import { HeatmapChart, LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, TooltipComponent, VisualMapContinuousComponent } from "echarts/components";
import { init, use } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";

use([HeatmapChart, LineChart, ScatterChart, GridComponent, TooltipComponent, VisualMapContinuousComponent, CanvasRenderer]);
export { init };
